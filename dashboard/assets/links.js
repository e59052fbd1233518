// A click on one of our links changes the page in place, as the menu does: without this the
// browser would load the whole application again. Streamlit listens to the history of the
// browser, so the new address is put there and announced. With a modifier key, another button
// or another host, and wherever this script does not run, a link is an ordinary link.
(() => {
  if (window.kernelwatchLinks) return;
  window.kernelwatchLinks = true;
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.kw-link");
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const target = new URL(link.href, document.baseURI);
    if (target.origin !== location.origin) return;
    event.preventDefault();
    goTo(target);
  });

  function goTo(target) {
    history.pushState({}, "", target);
    window.dispatchEvent(new PopStateEvent("popstate"));
    window.scrollTo(0, 0);
    document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
  }

  // Signing in and out end at the first page: from there, go back to where the button was.
  const place = "kernelwatch.place";
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.(".st-key-sign-in, .st-key-sign-out")) return;
    sessionStorage.setItem(place, JSON.stringify({ address: location.href, at: Date.now() }));
  });
  const left = JSON.parse(sessionStorage.getItem(place) ?? "null");
  sessionStorage.removeItem(place);
  if (left && Date.now() - left.at < 600000 && location.search === "") {
    const target = new URL(left.address);
    if (target.pathname.startsWith(location.pathname)) goTo(target);
  }
})();

"""200 alerts through a mail server that fails at random: `python tests/bench/bench_outbox.py [SEED]`.

Prints how many were lost (none may be), how many arrived twice, and the hand-overs without an
answer, which are the one reason for a second copy.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from mail_trial import random_failures  # noqa: E402 - found by the line above
from mailserver import Fault, Mailbox, listening  # noqa: E402 - as above

from alerts.outbox_delivery import mail_carrier  # noqa: E402 - as above
from alerts.smtp import Security, Server  # noqa: E402 - as above
from store.database import Database  # noqa: E402 - as above

ALERTS = 200


def main() -> None:
    """Run one trial and print it."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20260401
    mailbox = Mailbox()
    with tempfile.TemporaryDirectory() as folder, listening(mailbox) as port:
        server = Server(host="localhost", port=port, security=Security.NONE)
        begin = time.perf_counter()
        trial = random_failures(
            Database(Path(folder) / "o.duckdb"), mail_carrier(server), mailbox, alerts=ALERTS, seed=seed
        )
        seconds = time.perf_counter() - begin
    hand_overs = sum(trial.faults.values())
    taken_unsaid = trial.faults[Fault.DIE_AFTER_TAKING]
    print(f"{ALERTS} alerts, {hand_overs} hand-overs in {trial.passes} passes, seed {seed}")
    for fault, number in trial.faults.most_common():
        print(f"  {number:4} {fault.name.lower().replace('_', ' ')}")
    print(f"lost: {trial.lost}")
    print(f"arrived twice or more: {trial.duplicates} (the server took {taken_unsaid} without saying so)")
    print(f"hand-overs without an answer, as counted by the sender: {trial.uncertain}")
    print(f"{seconds / hand_overs:.3f} s a hand-over, store included")


if __name__ == "__main__":
    main()

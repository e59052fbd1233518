"""Charts: pure functions from rows to Altair charts. They read nothing and write nothing."""

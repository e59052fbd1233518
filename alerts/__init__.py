"""Judge and tell: verdicts, pull-request comments, email."""

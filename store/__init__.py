"""Remember: the only room that knows SQL and git history. It imports no sibling."""

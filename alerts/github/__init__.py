"""GitHub: comments, checks and pictures on a pull request, over its REST interface."""

"""``python -m alerts``, for an interpreter whose console scripts are not on the path."""

from alerts.cli import main

if __name__ == "__main__":
    main()

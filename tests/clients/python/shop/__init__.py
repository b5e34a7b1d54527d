"""The application that the checks of Django migrate, fill and administrate."""

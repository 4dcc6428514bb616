"""A page that people can read and file, whole in one HTML file."""

"""What plugs localparity into tools that people already run; each is optional and a separate module."""

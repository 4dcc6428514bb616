"""The command `localparity`."""

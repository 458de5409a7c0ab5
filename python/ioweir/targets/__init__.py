"""Storage targets: how fast they are, and labs of them to try things on."""

"""The service: HTTP shells around two parties, as two applications in two processes.

``server_app`` sees releases only: signals, impressions, released models. ``curator_app`` holds raw ratings. Neither imports
the other.
"""

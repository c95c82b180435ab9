"""What comes out of certifying and attacking: read-only arrays with the facts that they are about."""

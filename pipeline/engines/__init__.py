"""Where SQL runs. Engines are twins: scan, define, fetch, close."""

"""Where SQL runs. All engines have the same methods: scan, define, fetch, close."""

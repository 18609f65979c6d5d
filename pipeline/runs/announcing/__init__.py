"""Other systems are told how an attempt went: lineage events and a file of metrics. Neither ever stops a run."""

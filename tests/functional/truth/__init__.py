"""What torch itself does, observed: a dispatch recorder, and the calls it watches (torch's own test data)."""

"""The embedded demo: a simulated node, small servers, real pip. Its generators also serve the tests."""

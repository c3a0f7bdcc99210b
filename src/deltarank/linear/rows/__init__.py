"""Where rows lie: here, on a device, on a cluster."""

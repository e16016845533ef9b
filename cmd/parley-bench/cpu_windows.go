package main

// ownUsage is available on Unix only.
func ownUsage() usage { return usage{} }

package main

// ownUsage is known on Unix only.
func ownUsage() usage { return usage{} }

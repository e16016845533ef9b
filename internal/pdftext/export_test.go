package pdftext

// Files that loop end sooner in tests.
func init() { maxCPU = 1 }

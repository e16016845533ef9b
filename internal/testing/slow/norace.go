//go:build !race

package slow

const Race = false

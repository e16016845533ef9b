package app

// Nearest returns the candidate that a misspelt word most likely meant, or "".
func Nearest(word string, candidates []string) string {
	best, bound := "", 1+len(word)/6
	for _, c := range candidates {
		if d := distance(word, c); d <= bound && d < len(word) {
			best, bound = c, d-1
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour to get from a to b.
func distance(a, b string) int {
	older, old := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, old[j+1]+1, old[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
		older, old = old, row
	}
	return old[len(b)]
}

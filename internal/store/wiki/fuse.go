package wiki

import (
	"cmp"
	"maps"
	"slices"

	"github.com/parley-server/parley/internal/search"
)

// place identifies a section of a workspace.
type place struct {
	path string
	n    int32
}

// ranked is a section that a search has found. Its Hit has no text yet.
type ranked struct {
	place
	Hit
}

// rankBias is the constant of reciprocal rank fusion: how little the first places of a rank differ.
const rankBias = 60

// fuseRanks joins the ranks of words and of vectors by reciprocal rank fusion: a place counts 1/(60 +
// place), and in the rank of words this is multiplied by the share of the terms that the section has.
// So a section with a rare exact term precedes one that only resembles the query, and the meaning
// decides about questions whose words are common. The score is 1 for the first place in both.
func fuseRanks(words, vectors []ranked) []ranked {
	if len(vectors) == 0 {
		return words
	}
	all := make(map[place]ranked, len(words)+len(vectors))
	for i, r := range words {
		r.Score = r.Coverage * placeValue(i)
		all[r.place] = r
	}
	for i, r := range vectors {
		r.Score = placeValue(i)
		if same, ok := all[r.place]; ok {
			r.Score, r.Coverage, r.Source = r.Score+same.Score, same.Coverage, search.ByBoth
		}
		all[r.place] = r
	}
	return slices.SortedFunc(maps.Values(all), func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Coverage, a.Coverage), cmp.Compare(a.path, b.path), cmp.Compare(a.n, b.n))
	})
}

// placeValue is the value of a place in one of the two ranks.
func placeValue(i int) float64 { return (rankBias + 1) / float64(rankBias+1+i) / 2 }

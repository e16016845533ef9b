package model

import (
	"maps"
	"slices"
)

// PricesSource names the source of the prices.
const PricesSource = "list prices of the providers, March 2026"

// Priced returns the names of the models that have a price, sorted.
func Priced() []string { return slices.Sorted(maps.Keys(prices)) }

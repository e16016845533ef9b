package schema

import "math"

// numberBetween makes a number.
func numberBetween(nodes []*node, whole bool, variant int) (any, bool) {
	low, high, step := math.Inf(-1), math.Inf(1), 0.0
	for _, n := range nodes {
		for name, value := range n.limits {
			f, _ := value.(float64)
			switch name {
			case "minimum", "exclusiveMinimum":
				low = max(low, f)
			case "maximum", "exclusiveMaximum":
				high = min(high, f)
			}
		}
		step = max(step, n.multiple)
	}
	if !whole && step == 0 && !math.IsInf(low, 0) && !math.IsInf(high, 0) {
		return low + (high-low)/float64(variant%7+2), true
	}
	step = max(step, 1)
	near := 0.0 // the multiple in the range that is nearest to zero
	switch {
	case low > 0:
		near = math.Ceil(low / step)
	case high < 0:
		near = math.Floor(high / step)
	}
	away := float64(variant)
	switch {
	case math.IsInf(low, 0) && math.IsInf(high, 0): // 0, -1, 1, -2, 2
		away = float64((variant + 1) / 2 * (1 - variant%2*2))
	case (near+away)*step > high:
		away = -away
	}
	return (near + away) * step, true
}

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// column is one figure of the table.
type column struct {
	title  string
	metric Metric
	scale  float64 // 0 for 1
}

var columns = []column{
	{"per second", Rate, 0},
	{"MB/s", Volume, 1e-6},
	{"p50 ms", P50, 0},
	{"p99 ms", P99, 0},
	{"over p50", Overhead, 0},
	{"first p50", FirstP50, 0},
	{"first p99", FirstP99, 0},
	{"start p50", StartP50, 0},
	{"start p99", StartP99, 0},
	{"delivered", Delivered, 0},
	{"rows/delta", Rows, 0},
	{"CPU s/M", CPU, 0},
	{"of it PG", Database, 0},
	{"WAL B/delta", WAL, 0},
	{"CPU ms/turn", TurnCPU, 0},
	{"of it PG", TurnDatabase, 0},
	{"SQL/turn", Statements, 0},
	{"commits/turn", Commits, 0},
	{"503s", Rejected, 0},
	{"peak MB", Peak, 1e-6},
	{"KB/stream", Memory, 1. / 1024},
	{"lost rows", Lost, 0},
}

func (c column) cell(f Figures) string {
	v, ok := f[c.metric]
	if !ok {
		return ""
	}
	if c.scale != 0 {
		v *= c.scale
	}
	return formatNumber(v)
}

// short returns the figures of a run on one line, for the progress.
func (f Figures) short() string {
	var parts []string
	for _, c := range columns {
		if cell := c.cell(f); cell != "" {
			parts = append(parts, c.title+" "+cell)
		}
	}
	return strings.Join(parts, ", ")
}

// formatNumber formats three significant digits, with separated thousands.
func formatNumber(v float64) string {
	switch a := max(v, -v); {
	case a >= 1000:
		s := strconv.FormatFloat(v, 'f', 0, 64)
		for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case a >= 100 || a == float64(int64(a)):
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

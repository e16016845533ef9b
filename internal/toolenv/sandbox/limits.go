package sandbox

import (
	"cmp"
	"fmt"
	"time"
)

const mib = 1 << 20

// withDefaults replaces zero values with defaults.
func (l Limits) withDefaults(d Limits) Limits {
	return Limits{
		Time:      cmp.Or(l.Time, d.Time),
		CPU:       cmp.Or(l.CPU, d.CPU),
		Processes: cmp.Or(l.Processes, d.Processes),
		Memory:    cmp.Or(l.Memory, d.Memory),
		Output:    cmp.Or(l.Output, d.Output),
		File:      cmp.Or(l.File, d.File),
		Temp:      cmp.Or(l.Temp, d.Temp),
		Folder:    cmp.Or(l.Folder, d.Folder),
		Files:     cmp.Or(l.Files, d.Files),
	}
}

// OrDefault replaces zero values with the defaults of a sandbox without Limits of its own.
func (l Limits) OrDefault() Limits { return l.withDefaults(defaults) }

var defaults = Limits{
	Time:      30 * time.Second,
	CPU:       60 * time.Second,
	Processes: 128,
	Memory:    1024 * mib,
	Output:    16 * mib,
	File:      64 * mib,
	Temp:      64 * mib,
	Folder:    512 * mib,
	Files:     20_000,
}

// describeSize formats bytes for users.
func describeSize(n int64) string {
	switch {
	case n >= mib:
		return fmt.Sprintf("%d MiB", n/mib)
	case n >= 1024:
		return fmt.Sprintf("%d KiB", n/1024)
	}
	return fmt.Sprintf("%d bytes", n)
}

// describeDuration formats a duration for users: 30 s, 1 min 30 s.
func describeDuration(d time.Duration) string {
	minutes, seconds := d/time.Minute, (d % time.Minute).Seconds()
	switch {
	case minutes == 0:
		return fmt.Sprintf("%.4g s", seconds)
	case seconds == 0:
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d min %.4g s", minutes, seconds)
}

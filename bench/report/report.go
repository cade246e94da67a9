// Package report compares the results of a benchmark with former ones.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Report has the results of a benchmark as ratios to a limit that was measured in the same run.
// Ratios depend less on the machine than the figures do.
type Report struct {
	Command string  `json:"command"` // its flags
	Ratios  []Ratio `json:"ratios"`
}

// Ratio is the median of the ratios of consecutive measurements, with their quartiles.
type Ratio struct {
	Name   string  `json:"name"` // unique in a report
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// LessIsBetter tells a time from a throughput.
	LessIsBetter bool `json:"lessIsBetter,omitempty"`
	// Bound is the worst acceptable ratio, however small the change since the former report. 0
	// means none.
	Bound float64 `json:"bound,omitempty"`
}

// minChange is the relative change of a median below which it counts as noise.
const minChange = 0.1

// Worse reports whether r is worse than a former ratio beyond noise: by a tenth, and with quartiles
// apart.
func (r Ratio) Worse(former Ratio) bool {
	if r.LessIsBetter {
		return r.Median > former.Median*(1+minChange) && r.Low > former.High
	}
	return r.Median < former.Median*(1-minChange) && r.High < former.Low
}

// OutOfBound reports whether r is beyond its bound, with all but a quarter of its measurements.
func (r Ratio) OutOfBound() bool {
	if r.LessIsBetter {
		return r.Bound > 0 && r.Low > r.Bound
	}
	return r.High < r.Bound
}

// Compare describes the ratios of the report that are out of bounds or worse than those of a former
// one, and those that are missing.
func (r Report) Compare(former Report) (worse []string) {
	now := map[string]Ratio{}
	for _, one := range r.Ratios {
		now[one.Name] = one
	}

	for _, before := range former.Ratios {
		after, ok := now[before.Name]
		switch {
		case !ok:
			worse = append(worse, before.Name+": not measured")
		case after.Worse(before):
			worse = append(worse, fmt.Sprintf("%s: %.2f (%.2f–%.2f), was %.2f (%.2f–%.2f)", after.Name, after.Median,
				after.Low, after.High, before.Median, before.Low, before.High))
		case after.OutOfBound():
			worse = append(worse, fmt.Sprintf("%s: %.2f (%.2f–%.2f), must reach %.2f", after.Name, after.Median,
				after.Low, after.High, after.Bound))
		}
	}

	return worse
}

// Write writes the report of the running command to a file. "" writes nothing.
func (r Report) Write(file string) error {
	if file == "" {
		return nil
	}

	args := slices.Clone(os.Args[1:])
	if i := slices.Index(args, file); i > 0 {
		args = slices.Delete(args, i-1, i+1) // the flag of the file itself
	}

	r.Command = strings.Join(args, " ")
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}

	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// Read reads a report from a file.
func Read(file string) (r Report, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}

	return r, json.Unmarshal(text, &r)
}

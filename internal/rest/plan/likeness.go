package plan

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

const (
	// minimum likeness of a suggestion; a lower one would reveal names to strangers
	minLikeness       = 0.75
	minPublicLikeness = 0.33 // minimum likeness for public names
	maxComparedBytes  = 256  // maximum length of a compared client text, in bytes
	maxCandidates     = 50   // names compared, those that share the most with it first
)

// mostSimilar returns the name most similar to an unknown one, or "" if no likeness reaches least.
// As in the contract, candidates share three consecutive characters with it, or else two; the
// fewest edits win.
func mostSimilar(names []string, wrong string, least float64) string {
	if len(wrong) > maxComparedBytes {
		return ""
	}

	names = slices.Clone(names)
	slices.Sort(names) // makes ties deterministic
	wrong = strings.ToLower(wrong)
	for _, n := range names {
		if strings.ToLower(n) == wrong {
			return n
		}
	}

	for _, size := range []int{3, 2} {
		best, score := "", 0.0
		for _, n := range nearest(names, wrong, size) {
			if s := likeness(strings.ToLower(n), wrong); s >= least && s > score {
				best, score = n, s
			}
		}

		if best != "" {
			return best
		}
	}

	return ""
}

// nearest returns the names that share n-grams of this size with another, by descending similarity.
func nearest(names []string, wrong string, size int) []string {
	type near struct {
		name  string
		angle float64 // cosine, not divided by the length of wrong
	}

	wanted := map[string]int{}
	for _, part := range parts(wrong, size) {
		wanted[part]++
	}

	var found []near
	for _, n := range names {
		own := parts(n, size)
		if !slices.ContainsFunc(own, func(part string) bool { return wanted[part] > 0 }) {
			continue
		}

		counts := map[string]int{}
		for _, part := range own {
			counts[part]++
		}

		product, square := 0, 0
		for part, count := range counts {
			product += count * wanted[part]
			square += count * count
		}

		found = append(found, near{n, float64(product) / math.Sqrt(float64(square))})
	}

	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(b.angle, a.angle) })
	list := make([]string, 0, maxCandidates)
	for _, f := range found[:min(len(found), maxCandidates)] {
		list = append(list, f.name)
	}

	return list
}

// parts returns all n-grams of a text enclosed in hyphens. Only letters, digits, spaces and commas
// count.
func parts(text string, size int) []string {
	text = "-" + strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSpace(r) || r == ',' {
			return unicode.ToLower(r)
		}
		return -1
	}, text) + "-"

	starts := make([]int, 0, len(text)+1)
	for i := range text {
		starts = append(starts, i)
	}

	starts = append(starts, len(text))
	var list []string
	for i := 0; i+size < len(starts); i++ {
		list = append(list, text[starts[i]:starts[i+size]])
	}

	return list
}

// likeness returns the share of characters that need no edit: 1 for equal texts, 0 for disjoint
// ones.
func likeness(one, other string) float64 {
	a, b := []rune(one), []rune(other)
	length := max(len(a), len(b))
	if length == 0 {
		return 1
	}

	edits := make([]int, len(b)+1)
	for j := range edits {
		edits[j] = j
	}

	for i := range a {
		corner := edits[0]
		edits[0] = i + 1
		for j := range b {
			change := corner
			if a[i] != b[j] {
				change++
			}

			corner = edits[j+1]
			edits[j+1] = min(change, corner+1, edits[j]+1)
		}
	}

	return 1 - float64(edits[len(b)])/float64(length)
}

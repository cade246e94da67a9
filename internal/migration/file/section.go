package file

import (
	"regexp"
	"strings"
)

// A dbmate or goose file contains both directions. A comment begins each of them.
var (
	upMarker   = regexp.MustCompile(`(?m)^--[ \t]*(?:migrate:up\b|\+goose[ \t]+Up\b)(.*)$`)
	downMarker = regexp.MustCompile(`(?m)^--[ \t]*(?:migrate:down\b|\+goose[ \t]+Down\b).*$`)

	// separateMarkers are the comments by which a file asks for a transaction per statement.
	separateMarkers = regexp.MustCompile(`(?m)^--[ \t]*\+goose[ \t]+NO[ \t]+TRANSACTION\b`)
	separateOption  = regexp.MustCompile(`\btransaction:[ \t]*false\b`)
)

// NoTransaction is the first line if each statement in a file is a separate transaction.
const NoTransaction = "-- socle: no-transaction"

// Up returns the part of a file that is to run: everything, unless it has a section up, as dbmate
// and goose files do. Spaces replace the rest, so that lines and characters keep their positions.
// separate tells that each statement is a separate transaction.
func Up(text string) (up string, separate bool) {
	first, _, _ := strings.Cut(text, "\n")
	separate = strings.TrimSpace(first) == NoTransaction

	begin := upMarker.FindStringSubmatchIndex(text)
	if begin == nil {
		return text, separate
	}

	options := text[begin[2]:begin[3]]
	separate = separate || separateMarkers.MatchString(text) || separateOption.MatchString(options)

	end := len(text)
	if down := downMarker.FindStringIndex(text[begin[1]:]); down != nil {
		end = begin[1] + down[0]
	}

	return blank(text[:begin[0]]) + text[begin[0]:end] + blank(text[end:]), separate
}

// blank replaces all characters but line breaks by spaces.
func blank(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, text)
}

package rules

import (
	"regexp"
	"slices"
	"strings"
)

// variable matches a variable in a text. Data has members of its own.
var variable = regexp.MustCompile(`\{\{\s*\.([A-Za-z]+)((?:\.[A-Za-z0-9_]+)*)\s*\}\}`)

// action matches everything in a text that looks like a variable.
var action = regexp.MustCompile(`\{\{[^}]*\}?\}?`)

// variableNames are the variables of mails.
var variableNames = []string{"ConfirmationURL", "Token", "TokenHash", "SiteURL", "RedirectTo", "Email",
	"NewEmail", "Data"}

// unknownVariable returns the first {{ … }} of a text that stands for nothing, "" if there is none.
func unknownVariable(text string) string {
	for _, candidate := range action.FindAllString(text, -1) {
		parts := variable.FindStringSubmatch(candidate)
		if parts == nil || parts[0] != candidate || (parts[2] != "" && parts[1] != "Data") ||
			!slices.Contains(variableNames, parts[1]) {
			return candidate
		}
	}

	return ""
}

// maxFilled is the maximum number of bytes of the values in a text. They can be long and stand
// often.
const maxFilled = 100_000

// Fill replaces the variables of a text by their values. path has the members behind a variable,
// such as name in {{ .Data.name }}.
func Fill(text string, value func(name string, path []string) string) string {
	budget := maxFilled
	return variable.ReplaceAllStringFunc(text, func(action string) string {
		parts := variable.FindStringSubmatch(action)
		v := value(parts[1], strings.Split(strings.TrimPrefix(parts[2], "."), "."))
		if budget -= len(v); budget < 0 {
			return ""
		}

		return v
	})
}

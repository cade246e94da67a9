package rules

import (
	"regexp"
	"slices"
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

// Fill replaces the variables of a text by their values. The name of a member of Data has its path,
// such as Data.name.
func Fill(text string, value func(name string) string) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		parts := variable.FindStringSubmatch(match)
		return value(parts[1] + parts[2])
	})
}

package repository

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
)

// variableFiles are a repository's variable files; the first one with a name wins.
var variableFiles = []string{Folder + "/.env.local", Folder + "/.env", ".env.local", ".env"}

// readVariables reads the variables in a repository's files.
func readVariables(files *os.Root) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range variableFiles {
		some, err := readVariableFile(files, name)
		if err != nil {
			return nil, err
		}

		for name, value := range some {
			if _, ok := all[name]; !ok {
				all[name] = value
			}
		}
	}

	return all, nil
}

// readVariableFile reads the variables in a file; none if it does not exist.
func readVariableFile(files *os.Root, name string) (map[string]string, error) {
	text, err := readRegular(files, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, Problems{{File: name, Text: "is no file in the repository that can be read"}}
	}

	return ParseVariables(string(text)), nil
}

// FunctionVariablesFile has the variables of edge functions that are served on this machine.
const FunctionVariablesFile = FunctionsFolder + "/.env"

// FunctionVariables reads [FunctionVariablesFile] of a repository; none if it does not exist.
func FunctionVariables(root string) (map[string]string, error) {
	files, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer files.Close()

	return readVariableFile(files, FunctionVariablesFile)
}

// assignment matches a line of a file with variables.
var assignment = regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$`)

// assignments matches the lines of a file with variables. A value in quotes may have several.
var assignments = regexp.MustCompile(`(?m)^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=` +
	`(?:[ \t]*"((?:[^"\\]|\\.)*)"|[ \t]*'([^']*)'|([^\r\n]*))`)

// comment matches a comment behind a value without quotes.
var comment = regexp.MustCompile(`[ \t]#.*`)

// escapes are what double quotes have for characters.
var escapes = strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`, `\\`, `\`)

// ParseVariables returns the variables in a text with lines NAME=value. A value may stand in
// quotes; without them it ends before a comment.
func ParseVariables(text string) map[string]string {
	all := map[string]string{}
	for _, m := range assignments.FindAllStringSubmatch(strings.TrimPrefix(text, "\ufeff"), -1) {
		all[m[1]] = escapes.Replace(m[2]) + m[3] + strings.TrimSpace(comment.ReplaceAllString(m[4], ""))
	}

	return all
}

// Frameworks are the frameworks whose variables reach the browser by a prefix, by the dependency
// that tells them.
var Frameworks = []Framework{
	{"next", "NEXT_PUBLIC_"}, {"expo", "EXPO_PUBLIC_"}, {"nuxt", "NUXT_PUBLIC_"}, {"vite", "VITE_"}, {"none", ""},
}

// Framework is an application framework, named as its package.
type Framework struct{ Name, Prefix string }

// FindFramework returns the framework with a name.
func FindFramework(name string) (Framework, bool) {
	i := slices.IndexFunc(Frameworks, func(f Framework) bool { return f.Name == name })
	if i < 0 {
		return Framework{}, false
	}

	return Frameworks[i], true
}

// Framework returns the application's framework by its package.json.
func (r *Repository) Framework() Framework {
	none := Frameworks[len(Frameworks)-1]
	files, err := os.OpenRoot(r.Root)
	if err != nil {
		return none
	}
	defer files.Close()

	text, err := readRegular(files, "package.json")
	if err != nil {
		return none
	}

	var manifest struct {
		Dependencies, DevDependencies map[string]any
	}
	if json.Unmarshal(text, &manifest) != nil {
		return none
	}

	for _, f := range Frameworks {
		_, runs := manifest.Dependencies[f.Name]
		_, builds := manifest.DevDependencies[f.Name]
		if runs || builds {
			return f
		}
	}

	return none
}

// Variable is an environment variable.
type Variable struct{ Name, Value string }

// Variables returns the variables by which an application finds its project. The key has both names
// that applications use.
func (f Framework) Variables(address, key string) []Variable {
	return []Variable{
		{f.Prefix + "SUPABASE_URL", address},
		{f.Prefix + "SUPABASE_PUBLISHABLE_KEY", key},
		{f.Prefix + "SUPABASE_ANON_KEY", key},
	}
}

// MergeVariables returns a variable text with new values. Other variables' lines stay, and so do
// the line ends.
func MergeVariables(text string, variables []Variable) string {
	end := "\n"
	if strings.Contains(text, "\r\n") {
		end = "\r\n"
	}

	var b strings.Builder
	var written []string
	for line := range strings.Lines(text) {
		m := assignment.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		i := -1
		if m != nil {
			i = slices.IndexFunc(variables, func(v Variable) bool { return v.Name == m[1] })
		}

		if i < 0 {
			b.WriteString(line)
			continue
		}

		written = append(written, m[1])
		b.WriteString(m[1] + "=" + variables[i].Value + end)
	}

	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteString(end)
	}

	for _, v := range variables {
		if !slices.Contains(written, v.Name) {
			b.WriteString(v.Name + "=" + v.Value + end)
		}
	}

	return b.String()
}

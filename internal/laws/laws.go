// Package laws holds the rules for the whole tree, as tests: allowed imports, valid SQL statements,
// current generated files. Each rule that a reviewer would otherwise have to remember belongs here.
package laws

// Package laws holds, as tests, the rules that the whole tree keeps: which package may import which, that
// every statement is one that the database takes, that generated files are current. A rule that one catches oneself
// remembering belongs here.
package laws

package dialect

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/sqllex"
)

// TransactionError is the reason why statements can't run in one transaction.
type TransactionError struct {
	Statement int // index
	Reason    string
}

// Pairs returns the indexes of each BEGIN and COMMIT among statements that run in one transaction
// anyway. They can be left out: the transaction ends later, and nothing is half applied.
//
// Separate transactions would be worse: if the second one fails, the first one stays, the file is
// not recorded, and the next run fails on existing objects. So Pairs returns an error for a COMMIT
// whose effect later statements need, and for a BEGIN or COMMIT alone. PostgreSQL rejects
// statements that need the end of a transaction, such as the use of a new enum value.
func Pairs(statements []sqllex.Statement) ([]int, *TransactionError) {
	var pairs []int
	begin, local := -1, -1 // the last BEGIN; a statement after it with an effect until COMMIT
	for i, s := range statements {
		switch {
		case slices.Contains(controlWords, s.Words[0]) && !isBegin(s) && !IsCommit(s):
			return nil, &TransactionError{i, strings.ToUpper(s.Words[0]) + " has options, which one transaction can't follow"}
		case isBegin(s) && begin >= 0:
			return nil, &TransactionError{i, "BEGIN is in a transaction already"}
		case isBegin(s):
			begin = i
		case IsCommit(s) && begin < 0:
			return nil, &TransactionError{i, "COMMIT has no BEGIN before it"}
		case IsCommit(s) && local >= 0 && i < len(statements)-1:
			return nil, &TransactionError{local, "the statement has an effect until COMMIT, but the file is one " +
				"transaction: put the statements after COMMIT into a file of their own"}
		case IsCommit(s):
			pairs = append(pairs, begin, i)
			begin, local = -1, -1
		case begin >= 0 && endsAtCommit(s):
			local = i
		}
	}

	if begin >= 0 {
		return nil, &TransactionError{begin, "BEGIN has no COMMIT after it"}
	}

	return pairs, nil
}

// controlWords are the first words in BEGIN and COMMIT.
var controlWords = []string{"begin", "start", "commit", "end"}

// isBegin reports whether a statement is BEGIN or START TRANSACTION without options.
func isBegin(s sqllex.Statement) bool {
	return matches(s, []string{"begin"}, []string{"begin", "transaction"}, []string{"begin", "work"},
		[]string{"start", "transaction"})
}

// IsCommit reports whether a statement is COMMIT or END without options.
func IsCommit(s sqllex.Statement) bool {
	return matches(s, []string{"commit"}, []string{"commit", "transaction"}, []string{"commit", "work"},
		[]string{"end"}, []string{"end", "transaction"}, []string{"end", "work"})
}

func matches(s sqllex.Statement, forms ...[]string) bool {
	return slices.ContainsFunc(forms, func(form []string) bool { return slices.Equal(form, s.Words) })
}

// endsAtCommit reports whether a statement's effect can end with the transaction.
func endsAtCommit(s sqllex.Statement) bool {
	text := strings.ToLower(s.Text)
	switch {
	case s.Words[0] == "set":
		return len(s.Words) > 1 && slices.Contains([]string{"local", "constraints", "transaction"}, s.Words[1])
	case s.Words[0] == "create":
		return strings.Contains(text, "on commit") || strings.Contains(text, "set_config")
	}

	return strings.Contains(text, "set_config")
}

package dialect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/sqllex"
)

// block translates the body of a DO block: its statements, texts of EXECUTE, and the questions
// whether there is a role or an extension of the platform. It replaces single statements, so that
// the block's control flow stays as it is.
type block struct {
	ts         Tokens
	edits      []edit
	notes      []string
	extensions []Extension
}

// edit replaces a part of a text, given by byte offsets.
type edit struct {
	start, end int
	text       string
}

// doBlock returns the verdict on a DO block, which it translates if it is in PL/pgSQL.
func doBlock(s sqllex.Statement) Verdict {
	ts := Tokenize(s.Text, 0)
	at := slices.IndexFunc(ts.All, func(t sqllex.Token) bool {
		return t.Kind == sqllex.DollarString || t.Kind == sqllex.String
	})
	if language := ts.Find(1, "language"); language > 0 {
		if strings.ToLower(strings.Trim(ts.Raw(language+1), `'"`)) != "plpgsql" {
			return Verdict{SQL: s.Text}
		}
		if at == language+1 { // 'plpgsql'
			at++
		}
	}

	body, ok := ts.literal(at)
	if !ok {
		return Verdict{SQL: s.Text}
	}

	b := block{ts: Tokenize(body, 0)}
	b.translate()
	if len(b.edits) == 0 {
		return Verdict{SQL: s.Text}
	}

	return Verdict{SQL: edited(ts.Text, []edit{ts.requoted(at, edited(body, b.edits))}), Notes: b.notes,
		Extensions: b.extensions}
}

// literal returns the text of a string without escapes, or false for any other token.
func (ts Tokens) literal(i int) (string, bool) {
	raw := ts.Raw(i)
	switch ts.Kind(i) {
	case sqllex.DollarString:
		tag := dollarTag(raw)
		return strings.TrimSuffix(strings.TrimPrefix(raw, tag), tag), !ts.All[i].Open
	case sqllex.String:
		ok := strings.HasPrefix(raw, "'") && !ts.All[i].Open
		return strings.ReplaceAll(strings.Trim(raw, "'"), "''", "'"), ok && strings.Count(raw, "'")%2 == 0 &&
			!strings.HasPrefix(raw, "''") && !strings.HasSuffix(raw, "''")
	}

	return "", false
}

// literals returns the text of a string and of those that continue it, and the index of the last.
func (ts Tokens) literals(i int) (text string, last int, ok bool) {
	text, ok = ts.literal(i)
	for last = i; ok && ts.Kind(last+1) == sqllex.String; last++ {
		var part string
		part, ok = ts.literal(last + 1)
		text += part
	}

	return text, last, ok
}

// requoted returns the edit that gives a string another text, in its own quotes.
func (ts Tokens) requoted(i int, text string) edit {
	t, quoted := ts.All[i], sqllex.Literal(text)
	if t.Kind == sqllex.DollarString {
		tag := dollarTag(ts.Raw(i))
		quoted = tag + text + tag
	}

	return edit{t.Start, t.End, quoted}
}

// dollarTag returns the tag with which a dollar-quoted string begins.
func dollarTag(raw string) string { return raw[:strings.IndexByte(raw[1:], '$')+2] }

func edited(text string, edits []edit) string {
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.start])
		b.WriteString(e.text)
		at = e.end
	}
	b.WriteString(text[at:])

	return b.String()
}

// beforeStatement are the words of PL/pgSQL after which a statement begins.
var beforeStatement = []string{"begin", "then", "else", "loop"}

func (b *block) translate() {
	for i := 0; i < len(b.ts.All); i++ {
		begins := i == 0 || b.ts.Raw(i-1) == ";" || slices.Contains(beforeStatement, b.ts.Word(i-1))
		if begins {
			if end := b.statement(i); end > i {
				i = end
				continue
			}
		}

		b.question(i)
	}
}

// statement translates the statement that begins at token i. It returns the index of its semicolon
// if it is replaced, else 0.
func (b *block) statement(i int) (end int) {
	for end = i; b.ts.Raw(end) != ";"; end++ {
		if end == len(b.ts.All) {
			return 0
		}
	}

	start, stop := b.ts.All[i].Start, b.ts.All[end].Start
	if b.ts.Word(i) == "execute" {
		return b.execute(i, end)
	}
	if !slices.Contains(definitionWords, b.ts.Word(i)) {
		return 0
	}

	sql, ok := b.decided(b.ts.Text[start:stop])
	if !ok {
		return 0
	}

	b.edits = append(b.edits, edit{start, stop, sql})
	return end
}

// definitionWords are the first words of statements in a block that have rules.
var definitionWords = []string{"alter", "comment", "create", "drop", "grant", "reset", "revoke", "set"}

// nothing is the statement of PL/pgSQL that does nothing.
const nothing = "null"

// decided returns the statement that replaces one in a block, or false if that stays. The platform
// creates extensions before the block.
func (b *block) decided(sql string) (string, bool) {
	statements := sqllex.Split(sql)
	if len(statements) != 1 || statements[0].Words[0] == "do" {
		return "", false
	}

	if isDeniedRole(statements[0]) {
		b.notes = append(b.notes, note("role %s is refused, as Supabase refuses it to postgres", administrator))
		return refusal, true
	}

	v := Decide(statements[0])
	switch {
	case v.Action == CreateExtension:
		v.SQL = nothing
		b.extensions = append(b.extensions, v.Extension)
	case v.Action == LeaveOut:
		v.SQL = nothing
	case v.Action != Run || v.SQL == statements[0].Text:
		return "", false
	}

	b.notes = append(b.notes, v.Notes...)
	return v.SQL, true
}

// administrator is the role that Supabase's postgres can't set either. A block asks for it with a
// handler of the refusal, and would go on as another role without it.
const administrator = "supabase_admin"

// refusal is the statement of PL/pgSQL that fails as SET ROLE does.
const refusal = `raise insufficient_privilege using message = 'permission denied to set role "` + administrator + `"'`

func isDeniedRole(s sqllex.Statement) bool {
	ts := Tokenize(s.Text, 0)
	role, ok := sessionRoleName(ts)
	return ok && role == administrator
}

// placeholder matches a part of format()'s template that stands for a name.
var placeholder = regexp.MustCompile(`%(?:\d+\$)?[IsL]`)

// anyName stands for a name that only the running block knows: a role that each project has.
const anyName = "authenticated"

// execute translates EXECUTE with a text, a format or a concatenation. Of the last, it can only
// leave out the whole.
func (b *block) execute(i, end int) int {
	at := i + 1
	for b.ts.Raw(at) == "(" {
		at++
	}

	isFormat := b.ts.Word(at) == "format"
	if isFormat {
		at += 2
	}

	text, last, ok := b.ts.literals(at)
	if !ok {
		return 0
	}

	var names placeholders
	if isFormat {
		text = names.replace(text)
	}
	isPart := b.ts.Raw(last+1) == "||"
	if isPart {
		text += b.operands(last+1, end)
	}

	noted := len(b.notes)
	sql, ok := b.decided(text)
	if ok && sql != nothing && sql != refusal {
		sql, ok = names.restore(sql)
		ok = ok && !isPart
	}

	switch {
	case !ok:
		b.notes = b.notes[:noted]
		return 0
	case sql == nothing || sql == refusal:
		b.edits = append(b.edits, edit{b.ts.All[i].Start, b.ts.All[end].Start, sql})
	default:
		e := b.ts.requoted(at, sql)
		e.end = b.ts.All[last].End
		b.edits = append(b.edits, e)
	}

	return end
}

// placeholders are the parts of format()'s template that stand for names which only the running
// block knows.
type placeholders []string

// maxPlaceholders is the number of placeholders that have distinct names.
const maxPlaceholders = 1000

func placeholderName(i int) string { return fmt.Sprintf("socle_%03d_", i) }

// replace replaces the placeholders of a template by names, which are no role's.
func (p *placeholders) replace(template string) string {
	return placeholder.ReplaceAllStringFunc(template, func(s string) string {
		*p = append(*p, s)
		return placeholderName(len(*p) - 1)
	})
}

// restore puts the placeholders into a statement again. It reports false unless each is there once.
func (p placeholders) restore(sql string) (string, bool) {
	if len(p) > maxPlaceholders {
		return "", false
	}

	for i, s := range p {
		if strings.Count(sql, placeholderName(i)) != 1 {
			return "", false
		}
		sql = strings.Replace(sql, placeholderName(i), s, 1)
	}

	return sql, true
}

// operands returns the text of a concatenation's further operands.
func (b *block) operands(i, end int) string {
	var text strings.Builder
	isName := false
	for ; i < end; i++ {
		part, ok := b.ts.literal(i)
		switch {
		case b.ts.Raw(i) == "||":
			isName = false
		case ok:
			text.WriteString(part)
		case !isName:
			text.WriteString(anyName)
			isName = true
		}
	}

	return text.String()
}

// providedExtensions are extensions of Supabase whose functions a project has, or gets from CREATE
// EXTENSION, without the extension.
var providedExtensions = []string{"http", "pg_cron", "pg_jsonschema", "pg_net", "pgmq", "supabase_vault"}

// questions are the catalog columns whose names a block asks for, with what stands for a name that
// the project has in another way, and the note about it. An answer returns "" for any other name.
var questions = map[string]func(name string) (answer, reason string){
	"rolname": func(name string) (answer, reason string) {
		if !isAbsent(name) {
			return "", ""
		}
		return "current_user", note("role %s: the project's owner stands for it", name)
	},
	"extname": func(name string) (answer, reason string) {
		if !slices.Contains(providedExtensions, name) {
			return "", ""
		}
		return "'plpgsql'", note("extension %s counts as installed: the project has its functions", name)
	},
	"evtname": func(name string) (answer, reason string) {
		return "'" + closingTrigger + "'", note("event trigger %s: that of the platform stands for it", name)
	},
}

// closingTrigger is the platform's event trigger that enables row level security on new tables.
const closingTrigger = "socle_close_new_tables"

// question answers a condition on the name of a role, an extension or an event trigger that begins
// at token i as if it were there: what names it is left out.
func (b *block) question(i int) {
	answerTo, ok := questions[b.ts.Identifier(i)]
	if !ok {
		return
	}

	from, to := i+2, i+3
	switch {
	case b.ts.Raw(i+1) == "=":
	case b.ts.Has(i+1, "in") && b.ts.Raw(i+2) == "(":
		from, to = i+3, i+3
		for to < len(b.ts.All) && b.ts.Raw(to) != ")" {
			to++
		}
	default:
		return
	}

	for at := from; at < to; at++ {
		name, ok := b.ts.literal(at)
		if !ok {
			continue
		}
		if answer, reason := answerTo(name); answer != "" {
			b.answer(at, answer, reason)
		}
	}
}

// answer replaces a name in a condition.
func (b *block) answer(i int, text, reason string) {
	t := b.ts.All[i]
	b.edits = append(b.edits, edit{t.Start, t.End, text})
	if !slices.Contains(b.notes, reason) {
		b.notes = append(b.notes, reason)
	}
}

// schemaOwner removes the owner of a new schema if it is a role that no project has.
func schemaOwner(ts Tokens, s Subject) (Verdict, bool) {
	if s.Kind != "schema" {
		return Verdict{}, false
	}

	i := ts.Find(2, "authorization")
	role := ts.Identifier(i + 1)
	if i < 3 || !isAbsent(role) {
		return Verdict{}, false
	}

	sql := edited(ts.Text, []edit{{ts.All[i].Start, ts.All[i+1].End, ""}})
	return Verdict{SQL: strings.TrimRight(sql, " "),
		Notes: []string{note("owner %s is left out: everything belongs to the project's owner", role)}}, true
}

// eventTrigger leaves out event triggers, which only the platform has.
func eventTrigger(_ Tokens, s Subject) (Verdict, bool) {
	if s.Kind != "event trigger" {
		return Verdict{}, false
	}

	return leaveOut("event trigger %s is left out: projects have none, and row level security is on for new tables anyway",
		s.Name), true
}

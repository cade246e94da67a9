package s3api

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/fault"
)

// policy tells what a form may upload, and until when.
type policy struct {
	expires    time.Time
	conditions []condition
	min, max   int64 // file size in bytes; a negative max is none
}

// condition is a condition on a form field.
type condition struct {
	field  string // lower case
	value  string
	prefix bool // value is only a prefix
}

var errPolicy = malformed("InvalidPolicyDocument", "The content of the form does not meet the conditions specified "+
	"in the policy document: the policy is no JSON of an expiration and conditions.")

// parsePolicy reads a policy in base64. It refuses what it does not know: a condition that is not
// checked would permit too much.
func parsePolicy(text string) (policy, error) {
	p := policy{max: -1}
	body, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return p, errPolicy.WithCause(err)
	}

	var in struct {
		Expiration string
		Conditions []json.RawMessage
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return p, errPolicy.WithCause(err)
	}
	if p.expires, err = time.Parse(time.RFC3339, in.Expiration); err != nil {
		return p, errPolicy.WithCause(err)
	}

	for _, raw := range in.Conditions {
		if err := p.addCondition(raw); err != nil {
			return p, err
		}
	}

	return p, nil
}

// addCondition adds a condition: an object with fields and values, or a list with an operator and
// operands.
func (p *policy) addCondition(raw json.RawMessage) error {
	var exact map[string]string
	if json.Unmarshal(raw, &exact) == nil && len(exact) > 0 {
		for field, value := range exact {
			p.conditions = append(p.conditions, condition{field: strings.ToLower(field), value: value})
		}
		return nil
	}

	var list []any
	if json.Unmarshal(raw, &list) != nil || len(list) != 3 {
		return errPolicy
	}

	operator, _ := list[0].(string)
	switch operator = strings.ToLower(operator); operator {
	case "content-length-range":
		first, err1 := size(list[1])
		last, err2 := size(list[2])
		if err1 != nil || err2 != nil {
			return errPolicy
		}

		p.min = max(p.min, first)
		if p.max < 0 || last < p.max {
			p.max = last
		}
		return nil
	case "eq", "starts-with":
		field, ok1 := list[1].(string)
		value, ok2 := list[2].(string)
		if !ok1 || !ok2 || !strings.HasPrefix(field, "$") {
			return errPolicy
		}

		p.conditions = append(p.conditions, condition{strings.ToLower(field[1:]), value, operator != "eq"})
		return nil
	}

	return errPolicy
}

// size reads a size in bytes, a JSON number or a number in a string.
func size(v any) (int64, error) {
	switch v := v.(type) {
	case float64:
		return strconv.ParseInt(strconv.FormatFloat(v, 'f', -1, 64), 10, 64)
	case string:
		return strconv.ParseInt(v, 10, 64)
	}
	return 0, strconv.ErrSyntax
}

// check fails if the policy has expired, if a field breaks a condition, or if a field has no
// condition.
func (p policy) check(fields map[string]string, bucket string, now time.Time) error {
	if now.After(p.expires) {
		return denied("AccessDenied", "Invalid according to Policy: Policy expired.")
	}

	conditions := map[string]bool{}
	for _, want := range p.conditions {
		conditions[want.field] = true
		got := fields[want.field]
		if want.field == "bucket" {
			got = bucket
		}
		if got != want.value && !(want.prefix && want.meets(got)) {
			return brokenPolicy("Policy Condition failed on " + want.field)
		}
	}

	for field := range fields {
		switch {
		case conditions[field], field == "policy", field == "x-amz-signature", strings.HasPrefix(field, "x-ignore-"):
			continue
		}
		return brokenPolicy("Extra input fields: " + field)
	}
	if !conditions["bucket"] || (fields["bucket"] != "" && fields["bucket"] != bucket) {
		return brokenPolicy("it is for another bucket")
	}

	return nil
}

// meets reports whether a value has the prefix. In a Content-Type field, every listed media type
// must.
func (c condition) meets(value string) bool {
	if c.field != "content-type" {
		return strings.HasPrefix(value, c.value)
	}

	for part := range strings.SplitSeq(value, ",") {
		if !strings.HasPrefix(strings.TrimSpace(part), c.value) {
			return false
		}
	}

	return true
}

func brokenPolicy(detail string) error {
	return fault.New(fault.Forbidden, "Invalid according to Policy: %s", detail).WithCode("AccessDenied")
}

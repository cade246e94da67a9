package enduser

import "testing"

func TestCharacterSets(t *testing.T) {
	t.Parallel()

	s := Settings{PasswordRequiredCharacters: []string{"lower", "upper", "digit", "symbol"}}
	for password, want := range map[string]bool{"aA1!": true, "aA1": false, "aA!": false, "a1!": false, "A1!": false,
		"äÄ1!": false, "": false} {
		if got := s.missingCharacters(password) == ""; got != want {
			t.Errorf("%q has all characters: got %v, want %v", password, got, want)
		}
	}

	s.PasswordRequiredCharacters = []string{"letter"}
	if s.missingCharacters("1A") != "" || s.missingCharacters("1") == "" {
		t.Error("any letter is enough for the set of letters")
	}
}

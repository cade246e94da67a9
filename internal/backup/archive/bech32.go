package archive

import "strings"

const bech32Letters = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"

// bech32 encodes bytes as in BIP 173, in upper case, as the age format does for secret keys.
func bech32(prefix string, data []byte) string {
	var values []byte
	bits, have := 0, 0
	for _, b := range data {
		bits, have = bits<<8|int(b), have+8
		for ; have >= 5; have -= 5 {
			values = append(values, byte(bits>>(have-5)&31))
		}

		bits &= 1<<have - 1
	}

	if have > 0 {
		values = append(values, byte(bits<<(5-have)&31))
	}

	var text []byte // checksum input
	lower := strings.ToLower(prefix)
	for i := range len(lower) {
		text = append(text, lower[i]>>5)
	}

	text = append(text, 0)
	for i := range len(lower) {
		text = append(text, lower[i]&31)
	}

	text = append(append(text, values...), 0, 0, 0, 0, 0, 0)
	sum := uint32(1)
	for _, v := range text {
		top := sum >> 25
		sum = sum&0x1ffffff<<5 ^ uint32(v)
		for i, g := range []uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 == 1 {
				sum ^= g
			}
		}
	}

	sum ^= 1
	for i := range 6 {
		values = append(values, byte(sum>>(5*(5-i))&31))
	}

	var out strings.Builder
	out.WriteString(prefix + "1")

	for _, v := range values {
		out.WriteByte(bech32Letters[v])
	}

	return out.String()
}

package webauthn

import (
	"encoding/binary"
	"errors"
)

// Authenticators encode by CTAP2's canonical form of CBOR (RFC 8949): lengths are definite and
// keys are integers or texts. This reader supports the types of keys and attestation objects:
// integers, byte strings, texts, arrays, maps and booleans.

const maxDepth = 4 // of nested arrays and maps, by CTAP2

var errCBOR = errors.New("invalid CBOR")

// Major types.
const (
	cborUint  = 0
	cborNint  = 1
	cborBytes = 2
	cborText  = 3
	cborArray = 4
	cborMap   = 5
	cborOther = 7
)

// decodeCBOR returns the first value of data and the rest. Integers are int64, maps have keys of
// int64 and string.
func decodeCBOR(data []byte) (value any, rest []byte, err error) { return decodeValue(data, 0) }

func decodeValue(data []byte, depth int) (any, []byte, error) {
	if len(data) == 0 || depth > maxDepth {
		return nil, nil, errCBOR
	}

	if data[0]>>5 == cborOther {
		switch data[0] & 31 {
		case 20, 21:
			return data[0]&31 == 21, data[1:], nil
		case 22:
			return nil, data[1:], nil
		}
		return nil, nil, errCBOR
	}

	n, rest, err := decodeArgument(data)
	if err != nil {
		return nil, nil, err
	}

	switch data[0] >> 5 {
	case cborUint:
		return n, rest, nil
	case cborNint:
		return -1 - n, rest, nil
	case cborBytes, cborText:
		if n > int64(len(rest)) {
			return nil, nil, errCBOR
		}
		if data[0]>>5 == cborText {
			return string(rest[:n]), rest[n:], nil
		}
		return rest[:n:n], rest[n:], nil
	case cborArray:
		return decodeArray(rest, n, depth)
	case cborMap:
		return decodeMap(rest, n, depth)
	}

	return nil, nil, errCBOR
}

// decodeArgument returns the number that follows a major type: a value, or a length.
func decodeArgument(data []byte) (int64, []byte, error) {
	size := 0
	switch info := data[0] & 31; {
	case info < 24:
		return int64(info), data[1:], nil
	case info < 28:
		size = 1 << (info - 24)
	default:
		return 0, nil, errCBOR
	}

	if len(data) < 1+size {
		return 0, nil, errCBOR
	}

	var padded [8]byte
	copy(padded[8-size:], data[1:1+size])
	n := int64(binary.BigEndian.Uint64(padded[:]))
	if n < 0 {
		return 0, nil, errCBOR
	}

	return n, data[1+size:], nil
}

func decodeArray(data []byte, n int64, depth int) (any, []byte, error) {
	if n > int64(len(data)) { // each item has a byte at least
		return nil, nil, errCBOR
	}

	items := make([]any, n)
	var err error
	for i := range items {
		if items[i], data, err = decodeValue(data, depth+1); err != nil {
			return nil, nil, err
		}
	}

	return items, data, nil
}

func decodeMap(data []byte, n int64, depth int) (any, []byte, error) {
	if n > int64(len(data)/2) {
		return nil, nil, errCBOR
	}

	members := make(map[any]any, n)
	for range n {
		key, rest, err := decodeValue(data, depth+1)
		if err != nil {
			return nil, nil, err
		}

		switch key.(type) {
		case int64, string:
		default:
			return nil, nil, errCBOR
		}
		if _, double := members[key]; double {
			return nil, nil, errCBOR
		}

		if members[key], data, err = decodeValue(rest, depth+1); err != nil {
			return nil, nil, err
		}
	}

	return members, data, nil
}

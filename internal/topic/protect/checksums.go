package protect

import (
	"math/big"
	"net/netip"
	"strconv"
	"strings"
)

// digits are the digits of a text, as numbers.
func digits(text string) (all []int) {
	for _, c := range []byte(text) {
		if c >= '0' && c <= '9' {
			all = append(all, int(c-'0'))
		}
	}
	return all
}

// luhn checks the checksum of payment cards, and others. Source: ISO/IEC 7812-1.
func luhn(text string) bool {
	all := digits(text)
	sum := 0
	for i := range all {
		n := all[len(all)-1-i]
		if i%2 == 1 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return len(all) > 1 && sum%10 == 0
}

// card checks that a payment card may have a number: its issuer's first digits, its length, and
// the checksum.
func card(text string) bool {
	all := digits(text)
	return len(all) >= 13 && len(all) <= 19 && !same(all) && luhn(text)
}

// same reports that all digits are equal: such numbers are placeholders.
func same(all []int) bool {
	for _, n := range all {
		if n != all[0] {
			return false
		}
	}
	return true
}

// iban checks the checksum of bank accounts. Source: ISO 13616, ISO/IEC 7064 MOD 97-10.
func iban(text string) bool {
	text = strings.ToUpper(strings.ReplaceAll(text, " ", ""))
	if len(text) < 15 || len(text) > 34 {
		return false
	}
	var number strings.Builder
	for _, c := range []byte(text[4:] + text[:4]) {
		switch {
		case c >= '0' && c <= '9':
			number.WriteByte(c)
		case c >= 'A' && c <= 'Z':
			number.WriteString(strconv.Itoa(int(c-'A') + 10))
		default:
			return false
		}
	}
	n, ok := new(big.Int).SetString(number.String(), 10)
	return ok && n.Mod(n, big.NewInt(97)).Int64() == 1
}

// weighted is the sum of digits, each times its weight.
func weighted(all []int, weights ...int) (sum int) {
	for i, w := range weights {
		sum += all[i] * w
	}
	return sum
}

// nhs checks the checksum of NHS numbers. Source: NHS data dictionary.
func nhs(text string) bool {
	all := digits(text)
	return len(all) == 10 && !same(all) && (11-weighted(all, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11)%11 == all[9]
}

// npi checks the checksum of US national provider identifiers: Luhn with the prefix 80840.
// Source: 45 CFR 162.406.
func npi(text string) bool { return len(digits(text)) == 10 && luhn("80840"+text) }

// dea checks the checksum of numbers of the US drug enforcement agency.
func dea(text string) bool {
	all := digits(text[2:])
	return len(all) == 7 && (all[0]+all[2]+all[4]+2*(all[1]+all[3]+all[5]))%10 == all[6]
}

// ssn excludes numbers that the US social security administration never assigns.
func ssn(text string) bool {
	all := digits(text)
	if len(all) != 9 || same(all) {
		return false
	}
	area, group, serial := all[0]*100+all[1]*10+all[2], all[3]*10+all[4], weighted(all[5:], 1000, 100, 10, 1)
	return area != 0 && area != 666 && area < 900 && group != 0 && serial != 0
}

// vin checks the checksum of vehicle identification numbers. Source: 49 CFR 565.15.
func vin(text string) bool {
	const letters = "0123456789.ABCDEFGH..JKLMN.P.R..STUVWXYZ" // the index of each: ten times anything plus its value
	weights := [...]int{8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2}
	text = strings.ToUpper(text)
	sum := 0
	for i, w := range weights {
		at := strings.IndexByte(letters, text[i])
		if at < 0 || text[i] == '.' {
			return false
		}
		sum += at % 10 * w
	}
	check := byte('0' + sum%11)
	if sum%11 == 10 {
		check = 'X'
	}
	return text[8] == check
}

// spanish checks the letter at the end of a DNI, a NIF or an NIE.
func spanish(text string) bool {
	text = strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(text))
	if at := strings.IndexByte("XYZ", text[0]); at >= 0 {
		text = strconv.Itoa(at) + text[1:]
	}
	n, err := strconv.Atoi(text[:len(text)-1])
	return err == nil && "TRWAGMYFPDXBNJZSQVHLCKE"[n%23] == text[len(text)-1]
}

// cpf checks the checksum of Brazilian taxpayer numbers.
func cpf(text string) bool {
	all := digits(text)
	if len(all) != 11 || same(all) {
		return false
	}
	check := func(sum int) int { return sum * 10 % 11 % 10 }
	return check(weighted(all, 10, 9, 8, 7, 6, 5, 4, 3, 2)) == all[9] && check(weighted(all, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)) == all[10]
}

// insee checks the key of a French social security number. Corsica's departments 2A and 2B
// count as 19 and 18.
func insee(text string) bool {
	text = strings.ToUpper(strings.ReplaceAll(text, " ", ""))
	text = strings.NewReplacer("2A", "19", "2B", "18").Replace(text[:7]) + text[7:]
	n, err := strconv.ParseInt(text[:len(text)-2], 10, 64)
	if err != nil {
		return false
	}
	key, err := strconv.ParseInt(text[len(text)-2:], 10, 64)
	return err == nil && 97-n%97 == key
}

// german checks the checksum of a German tax number: ISO/IEC 7064 MOD 11,10.
func german(text string) bool {
	all := digits(text)
	if len(all) != 11 || all[0] == 0 {
		return false
	}
	product := 10
	for _, n := range all[:10] {
		sum := (n + product) % 10
		if sum == 0 {
			sum = 10
		}
		product = sum * 2 % 11
	}
	return (11-product)%10 == all[10]
}

// italian checks the last letter of a codice fiscale. Source: decree of 23 December 1976.
func italian(text string) bool {
	odd := [...]int{1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23}
	text = strings.ToUpper(text)
	sum := 0
	for i := range 15 {
		n := int(text[i] - 'A')
		if text[i] <= '9' {
			n = int(text[i] - '0')
		}
		if i%2 == 0 {
			n = odd[n]
		}
		sum += n
	}
	return byte('A'+sum%26) == text[15]
}

// octets checks the octets of an IPv4 address.
func octets(text string) bool {
	for part := range strings.SplitSeq(text, ".") {
		if n, err := strconv.Atoi(part); err != nil || n > 255 {
			return false
		}
	}
	return true
}

// leastHex is the minimum number of digits of a recognised IPv6 address: a text with fewer,
// such as a::b, is more likely something else.
const leastHex = 4

// groups checks the groups of an IPv6 address.
func groups(text string) bool {
	a, err := netip.ParseAddr(text)
	hex := len(text) - strings.Count(text, ":")
	return err == nil && a.Is6() && hex > 0 && (hex >= leastHex || strings.ContainsAny(text, "0123456789"))
}

// latLong checks a latitude and a longitude.
func latLong(text string) bool {
	lat, long, ok := strings.Cut(text, ",")
	a, err := strconv.ParseFloat(strings.TrimSpace(lat), 64)
	b, err2 := strconv.ParseFloat(strings.TrimSpace(long), 64)
	return ok && err == nil && err2 == nil && a >= -90 && a <= 90 && b >= -180 && b <= 180
}

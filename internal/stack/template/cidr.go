package template

import (
	"math/big"
	"net/netip"
	"strconv"
)

// cidr divides an address block into blocks of so many bits each.
func (e *evaluator) cidr(n, arg *Node) (any, error) {
	block, err := e.text(arg.Items[0], ErrCIDR)
	if err != nil {
		return nil, err
	}
	numbers := [2]int{0, 8} // the count, and the bits
	for i, item := range arg.Items[1:] {
		s, err := e.text(item, ErrCIDR)
		if err != nil {
			return nil, err
		}
		if numbers[i], err = strconv.Atoi(s); err != nil {
			return nil, n.Refuse(ErrCIDR)
		}
	}
	prefix, err := netip.ParsePrefix(block)
	if err != nil {
		return nil, n.Refuse(ErrCIDRBlock.With(block))
	}
	count, bits := numbers[0], numbers[1]
	width := prefix.Addr().BitLen()
	if count < 1 || count > 256 || bits < 1 || bits > width {
		return nil, n.Refuse(ErrCIDR)
	}
	left := width - bits - prefix.Bits()
	if left < 0 || left < 9 && count > 1<<left {
		return nil, n.Refuse(ErrCIDRSize.With(block, count, bits))
	}
	base := new(big.Int).SetBytes(prefix.Masked().Addr().AsSlice())
	step := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	blocks := make([]any, count)
	for i := range blocks {
		address, _ := netip.AddrFromSlice(base.FillBytes(make([]byte, width/8))) // the length is right
		blocks[i] = netip.PrefixFrom(address, width-bits).String()
		base.Add(base, step)
	}
	return blocks, nil
}

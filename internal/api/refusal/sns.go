package refusal

var sns = sentences{}

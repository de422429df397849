package backlog

// OperatorStep is operatorStep.
const OperatorStep = operatorStep

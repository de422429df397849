// Pages that are seldom the first: they are fetched once one of them is asked for.
export { AlarmPage, AlarmsPage } from "./pages/alarms";
export { ClockPage } from "./pages/dev";
export { FilterPage } from "./pages/filter";
export { FunctionPage, FunctionsPage } from "./pages/functions";
export { IdentityPage } from "./pages/identity";
export { LogsPage } from "./pages/logs";
export { MetricsPage } from "./pages/metrics";
export { PolicyPage } from "./pages/policy";
export { SettingsPage } from "./pages/settings";
export { SourcePage, SourcesPage } from "./pages/sources";
export { TailPage } from "./pages/tail";
export { TopologyPage } from "./pages/topology";

import { Page } from "../ui/Surface";

export const UsageScreen = () => <Page title="Usage">{null}</Page>;

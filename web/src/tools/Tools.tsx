import { Page } from "../ui/Surface";

export const ToolsScreen = () => <Page title="Tools">{null}</Page>;

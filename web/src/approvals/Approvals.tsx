import { Page } from "../ui/Surface";

export const ApprovalsScreen = () => <Page title="Approvals">{null}</Page>;

import { Page } from "../ui/Surface";

export const ActivityScreen = () => <Page title="Activity">{null}</Page>;

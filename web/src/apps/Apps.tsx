import { Page } from "../ui/Surface";

export const AppsScreen = () => <Page title="Apps">{null}</Page>;

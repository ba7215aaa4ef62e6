import { Page } from "../ui/Surface";

export const AppDetail = () => <Page title="App">{null}</Page>;

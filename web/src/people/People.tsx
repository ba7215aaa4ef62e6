import { Page } from "../ui/Surface";

export const PeopleScreen = () => <Page title="People">{null}</Page>;
